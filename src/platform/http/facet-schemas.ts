import { Type } from 'typebox';

/** How many items match: parts of the answers that count a list by the values of its fields. */
export const countedTotal = {
  total_count: Type.Integer({ minimum: 0, examples: [12] }),
  total_is_estimate: Type.Optional(
    Type.Literal(true, { description: 'Only if `total_count` is an estimate.' }),
  ),
  sampled: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Only if the counts are estimates, scaled from so many of the newest matches.',
    }),
  ),
};

export function facetsOf(fields: readonly string[], example: string) {
  const FacetSchema = Type.Array(
    Type.Object({
      value: Type.String({ examples: [example] }),
      count: Type.Integer({ minimum: 0, examples: [12] }),
    }),
    { description: 'The 20 most frequent.' },
  );
  return Type.Object(Object.fromEntries(fields.map((field) => [field, FacetSchema])));
}
