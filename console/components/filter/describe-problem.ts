import { printTerm } from '../../lib/filter/filter.ts';
import type { FilterProblem } from '../../lib/filter/qualifiers.ts';
import type { TextsLike } from '../../lib/text/catalogue.ts';
import type { en } from '../kit-texts/en.ts';

/** What is wrong with a term, and what could stand there. */
export function describeProblem({ code, term, allowed }: FilterProblem, t: TextsLike<typeof en>): string {
  const [shown, others] = [printTerm(term), allowed.join(', ')];
  switch (code) {
    case 'unknown_qualifier':
      return t.unknownQualifier(shown, others);
    case 'missing_value':
      return t.missingValue(shown, others);
    case 'unknown_choice':
      return t.unknownChoice(shown, others);
    case 'wrong_time':
      return t.wrongTime(shown, others);
    case 'not_excludable':
      return t.notExcludable(shown);
    case 'given_twice':
      return t.givenTwice(shown);
    case 'too_many':
      return t.tooMany(shown, others);
    case 'no_text':
      return t.noText(shown);
  }
}
