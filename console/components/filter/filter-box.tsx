import { SlidersHorizontal } from 'lucide-react';
import { lazy, useCallback, Suspense, useId, useRef, useState } from 'react';
import { isSameTerm, parseFilter, printFilter, printTerm } from '../../lib/filter/filter.ts';
import { findProblems, type FilterProblem, type Qualifiers } from '../../lib/filter/qualifiers.ts';
import type { ValueCounts } from '../../lib/filter/complete-filter.ts';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { usePageKeys } from '../navigation/use-page-keys.ts';
import { useText } from '../text/use-text.ts';
import { SavedViews } from '../views/saved-views.tsx';
import { describeProblem } from './describe-problem.ts';
import styles from './filter.module.css';

export type FilterBoxProps = Readonly<{
  /** The filter as it is applied: that of the address. */
  value: string;
  onApply: (filter: string) => void;
  qualifiers: Qualifiers;
  /** Values that occur, for completion. */
  counts: ValueCounts;
  /** False where the filter is part of a form, so that its address is not that of a list. */
  hasViews?: boolean;
}>;

const CompletingInput = lazy(async () => ({
  default: (await import('./completing-input.tsx')).CompletingInput,
}));
const FilterForm = lazy(async () => ({ default: (await import('./filter-form.tsx')).FilterForm }));

/** One box for the whole filter. Enter applies it; what is wrong with it stands below and is not sent. */
export function FilterBox(props: FilterBoxProps) {
  const { value, onApply, qualifiers, counts, hasViews = true } = props;
  const t = useText(kitTexts);
  const problemsId = useId();
  const box = useRef<HTMLDivElement>(null);
  const isTypedInto = useRef(false);
  const takesFocus = useCallback(() => isTypedInto.current, []);
  usePageKeys({ '/': () => box.current?.querySelector('input')?.focus() });
  // What was typed holds until another filter is applied.
  const [typed, setTyped] = useState({ over: value, text: value });
  const text = typed.over === value ? typed.text : value;
  const setText = (next: string): void => setTyped({ over: value, text: next });
  const [isFormOpen, setFormOpen] = useState(false);
  const problems = text === value ? findProblems(parseFilter(value), qualifiers) : [];
  const apply = (next: string): void => onApply(printFilter(parseFilter(next)));
  const input = {
    text,
    onText: setText,
    onEnter: apply,
    placeholder: t.filterHint(exampleOf(qualifiers), qualifiers.text !== null),
    problemsId: problems.length > 0 ? problemsId : undefined,
  };
  return (
    <div ref={box} className={styles['filter']}>
      <form role="search" className={styles['bar']} onSubmit={(event) => event.preventDefault()}>
        <Suspense
          fallback={
            <PlainInput
              {...input}
              label={t.filter}
              onFocusChange={(isFocused) => {
                isTypedInto.current = isFocused;
              }}
            />
          }
        >
          <CompletingInput
            {...input}
            label={t.filter}
            takesFocus={takesFocus}
            qualifiers={qualifiers}
            counts={counts}
          />
        </Suspense>
        <Button label={t.filters} onPress={() => setFormOpen(!isFormOpen)}>
          <SlidersHorizontal size={14} aria-hidden /> {t.filters}
        </Button>
        {hasViews ? <SavedViews /> : null}
      </form>
      <Terms value={value} onApply={onApply} />
      {problems.length === 0 ? null : <Problems id={problemsId} problems={problems} />}
      {isFormOpen ? (
        <Suspense>
          <FilterForm
            value={value}
            qualifiers={qualifiers}
            counts={counts}
            onApply={(next) => {
              onApply(next);
              setFormOpen(false);
            }}
          />
        </Suspense>
      ) : null}
    </div>
  );
}

/** A term that this list knows. */
function exampleOf({ qualifiers }: Qualifiers): string {
  const shown = qualifiers.find(({ choices = [] }) => choices.length > 0) ?? qualifiers[0];
  return shown === undefined ? '' : `${shown.name}:${shown.choices?.at(-1) ?? '…'}`;
}

export type InputProps = Readonly<{
  text: string;
  onText: (text: string) => void;
  onEnter: (text: string) => void;
  placeholder: string;
  label: string;
  problemsId: string | undefined;
}>;

/** Until the completions are loaded. */
function PlainInput(props: InputProps & Readonly<{ onFocusChange: (isFocused: boolean) => void }>) {
  const { text, onText, onEnter, placeholder, label, problemsId, onFocusChange } = props;
  return (
    <input
      className={styles['input']}
      value={text}
      aria-label={label}
      aria-keyshortcuts="/"
      aria-describedby={problemsId}
      aria-invalid={problemsId !== undefined}
      placeholder={placeholder}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => onText(event.target.value)}
      onFocus={() => onFocusChange(true)}
      onBlur={() => onFocusChange(false)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') onEnter(text);
      }}
    />
  );
}

/** The applied terms, each with a button that removes it. */
function Terms({ value, onApply }: Pick<FilterBoxProps, 'value' | 'onApply'>) {
  const t = useText(kitTexts);
  const filter = parseFilter(value);
  if (filter.length === 0) return null;
  return (
    <ul className={styles['terms']}>
      {filter.map((term, i) => (
        <li key={`${i} ${printTerm(term)}`}>
          <button
            type="button"
            className={styles['term']}
            aria-label={t.removeTerm(printTerm(term))}
            onClick={() =>
              onApply(printFilter(filter.filter((other, j) => j !== i || !isSameTerm(other, term))))
            }
          >
            <span className={styles['termText']}>{printTerm(term)}</span>
            <span aria-hidden> ✕</span>
          </button>
        </li>
      ))}
      {filter.length > 1 ? (
        <li>
          <Button kind="quiet" onPress={() => onApply('')}>
            {t.clearFilter}
          </Button>
        </li>
      ) : null}
    </ul>
  );
}

function Problems({ id, problems }: Readonly<{ id: string; problems: readonly FilterProblem[] }>) {
  const t = useText(kitTexts);
  return (
    <ul id={id} role="alert" className={styles['problems']}>
      {problems.map((problem) => (
        <li key={`${problem.code} ${printTerm(problem.term)}`}>{describeProblem(problem, t)}</li>
      ))}
    </ul>
  );
}
