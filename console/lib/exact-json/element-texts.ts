/**
 * The texts of the elements of an array, as they were written, so that numbers keep their digits. For valid JSON only;
 * none for anything but an array.
 */
export function elementTexts(json: string): readonly string[] {
  const elements: string[] = [];
  let depth = 0;
  let from = -1;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') at = lastOfString(json, at);
    else if (char === '{' || char === '[') {
      depth += 1;
      if (depth === 1) {
        if (char === '{') return [];
        from = at + 1;
      }
    } else if (char === '}' || char === ']') depth -= 1;
    const isEnd = (char === ',' && depth === 1) || (char === ']' && depth === 0);
    if (!isEnd || from < 0) continue;
    const element = json.slice(from, at).trim();
    if (element !== '') elements.push(element);
    from = at + 1;
  }
  return elements;
}

/** Its closing quotation mark. */
function lastOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    if (json[at] === '\\') at += 1;
    else if (json[at] === '"') return at;
  }
  return json.length;
}
