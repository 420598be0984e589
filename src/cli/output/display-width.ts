const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** What takes two columns: East Asian wide and fullwidth characters, and emoji shown as pictures. */
const wide =
  /^(?:[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f)/u;
/** Hexagrams of the I Ching stand in the middle of wide ranges and are narrow. */
const narrow = /^[\u4dc0-\u4dff]/;
const withoutWidth = /^[\p{Mn}\p{Me}\p{Cf}]/u;
/** The sound marks of halfwidth kana belong to the character before them and yet take a column. */
const halfwidthMark = /[\uff9e\uff9f]/g;
const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

/** How many columns of a terminal the text takes; control characters must have been escaped. */
export function displayWidth(text: string): number {
  if (isPlain(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes.segment(text)) width += graphemeWidth(segment);
  return width;
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
    used += graphemeWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

function graphemeWidth(grapheme: string): number {
  if (withoutWidth.test(grapheme)) return 0;
  const marks = grapheme.length > 1 ? (grapheme.slice(1).match(halfwidthMark)?.length ?? 0) : 0;
  return (wide.test(grapheme) && !narrow.test(grapheme) ? 2 : 1) + marks;
}
