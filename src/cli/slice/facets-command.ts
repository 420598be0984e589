import type { ApiSession } from '../api/api-session.ts';
import { numberColumn, textColumn } from '../output/columns.ts';
import { showRows } from '../output/facts.ts';
import { apiCommand, type AddCommand } from './api-command.ts';
import type { CommandDefinition } from './define-command.ts';
import type { Route } from './request-of.ts';

type FacetValue = Readonly<{ value: string; count: number }>;

type Facets = Readonly<{
  total_count: number;
  total_is_estimate?: true;
  sampled?: number;
  facets: Readonly<Record<string, readonly FacetValue[]>>;
}>;

/** A command that counts items by the values of their fields, with the filters of their list. */
export function facetsCommand(
  definition: Omit<CommandDefinition, 'name' | 'route'> &
    Readonly<{
      route: Route;
      /** What is counted. */
      items: string;
      printAbove?: (answer: Facets, session: ApiSession) => void;
    }>,
): AddCommand {
  return apiCommand<Facets>({
    ...definition,
    name: 'facets',
    print(found, session) {
      const { print } = session;
      definition.printAbove?.(found, session);
      const about = found.sampled === undefined ? '' : `, estimated from the newest ${found.sampled}`;
      const total = `${found.total_is_estimate === true ? 'about ' : ''}${found.total_count}`;
      print.line(`${total} ${definition.items}${about}`);
      for (const [field, values] of Object.entries(found.facets))
        if (values.length > 0)
          showRows<FacetValue>(
            print,
            field.replaceAll('_', ' '),
            [numberColumn('COUNT', ({ count }) => count), textColumn('VALUE', ({ value }) => value)],
            values,
          );
    },
  });
}
