import type { Masks } from './protection.ts';

/** Shows the parts of one item, and notices whether any of them was covered. */
export type ItemCover = Readonly<{
  /** JSON text, to JSON text. */
  json: <Text extends string | null>(text: Text) => Text;
  text: <Text extends string | null>(text: Text) => Text;
  keyText: <Text extends string | null>(text: Text) => Text;
  /** Notices a part that was covered elsewhere. */
  noticed: <Part>(before: Part, shown: Part) => Part;
  /** The field that says so; the last one of the item. */
  mark: () => Readonly<{ masked?: true }>;
}>;

export function createItemCover(masks: Masks): ItemCover {
  let isMasked = false;
  const noticed = <Part>(before: Part, shown: Part): Part => {
    if (shown !== before) isMasked = true;
    return shown;
  };
  return {
    noticed,
    json: (text) => (text === null ? text : (noticed<string>(text, masks.json(text)) as typeof text)),
    text: (text) => noticed(text, masks.text(text)),
    keyText: (text) => noticed(text, masks.keyText(text)),
    mark: () => (isMasked ? { masked: true } : {}),
  };
}
