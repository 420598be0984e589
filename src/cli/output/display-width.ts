import stringWidth from 'string-width';

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Columns of a terminal that the text takes. Control characters must have been escaped. */
export function displayWidth(text: string): number {
  return stringWidth(text);
}

/** The text if it fits, else its beginning with an ellipsis, in at most `width` columns. */
export function cutToWidth(text: string, width: number): string {
  // A text that is certainly too long is not measured to its end.
  const head = text.slice(0, width * 8 + 8);
  if (head.length === text.length && displayWidth(text) <= width) return text;
  if (width < 1) return '';
  let kept = '';
  let used = 0;
  for (const { segment } of graphemes.segment(head)) {
    used += displayWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}
