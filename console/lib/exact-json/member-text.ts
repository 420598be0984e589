/**
 * The text of a member of the outermost object, as it was written, so that numbers keep their digits; null if there is
 * none. For valid JSON only; reads megabytes in milliseconds.
 */
export function memberText(json: string, name: string): string | null {
  let depth = 0;
  let from: number | null = null;
  let key: string | null = null;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') {
      const end = endOfString(json, at);
      if (depth === 1 && from === null) key = json.slice(at, end);
      at = end - 1;
    } else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    else if (char === ':' && depth === 1 && key === JSON.stringify(name)) from ??= at + 1;
    const isEnd = (char === ',' && depth === 1) || ((char === '}' || char === ']') && depth === 0);
    if (isEnd && from !== null) return json.slice(from, at).trim();
  }
  return null;
}

/** After the closing quotation mark. */
function endOfString(json: string, at: number): number {
  let end = json.indexOf('"', at + 1);
  while (end >= 0 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end < 0 ? json.length : end + 1;
}

function isEscaped(json: string, at: number): boolean {
  let backslashes = 0;
  while (json[at - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}
