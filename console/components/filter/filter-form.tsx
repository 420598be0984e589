import { useId, useState } from 'react';
import { withTerm, type ValueCounts } from '../../lib/filter/complete-filter.ts';
import { parseFilter, printFilter } from '../../lib/filter/filter.ts';
import type { Qualifier, Qualifiers } from '../../lib/filter/qualifiers.ts';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './filter.module.css';

type Props = Readonly<{
  value: string;
  qualifiers: Qualifiers;
  counts: ValueCounts;
  onApply: (filter: string) => void;
}>;

/** The same filter as a form, for those who do not know the qualifiers. */
export function FilterForm({ value, qualifiers, counts, onApply }: Props) {
  const t = useText(kitTexts);
  const [filter, setFilter] = useState(() => parseFilter(value));
  const valueOf = (name: string): string =>
    filter.find((term) => term.qualifier === name && !term.isExcluded)?.value ?? '';
  return (
    <form
      className={styles['form']}
      aria-label={t.filters}
      onSubmit={(event) => {
        event.preventDefault();
        onApply(printFilter(filter));
      }}
    >
      {qualifiers.qualifiers.map((qualifier) => (
        <Field
          key={qualifier.name}
          qualifier={qualifier}
          value={valueOf(qualifier.name)}
          counts={counts[qualifier.facet ?? ''] ?? []}
          onChange={(next) => setFilter(withTerm(filter, qualifier.name, next))}
        />
      ))}
      <Button type="submit" kind="primary">
        {t.applyFilters}
      </Button>
    </form>
  );
}

function Field(
  props: Readonly<{
    qualifier: Qualifier;
    value: string;
    counts: ValueCounts[string];
    onChange: (value: string) => void;
  }>,
) {
  const { qualifier, value, counts, onChange } = props;
  const t = useText(kitTexts);
  const listId = useId();
  const { name, kind, choices = [] } = qualifier;
  if (kind === 'choice' || kind === 'flag') {
    const chosen = value === '' ? [] : value.split(',');
    return (
      <fieldset className={styles['choices']}>
        <legend>{name}</legend>
        {choices.map((choice) => (
          <label key={choice}>
            <input
              type="checkbox"
              checked={chosen.includes(choice)}
              onChange={(event) => {
                const rest = chosen.filter((other) => other !== choice);
                const next = event.target.checked ? [...(kind === 'flag' ? [] : rest), choice] : rest;
                onChange(next.join(','));
              }}
            />
            {choice}
            <span className={styles['count']}>{countOf(counts ?? [], choice, t.occurrences)}</span>
          </label>
        ))}
      </fieldset>
    );
  }
  return (
    <label className={styles['field']}>
      {name}
      <input
        value={value}
        list={listId}
        placeholder={kind === 'time' ? '2h' : t.any}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={listId}>
        {(counts ?? []).map((occurring) => (
          <option key={occurring.value} value={occurring.value}>
            {occurring.value}
          </option>
        ))}
      </datalist>
    </label>
  );
}

function countOf(
  counts: readonly Readonly<{ value: string; count: number | null }>[],
  value: string,
  format: (count: number) => string,
): string {
  const count = counts.find((occurring) => occurring.value === value)?.count ?? null;
  return count === null ? '' : format(count);
}
