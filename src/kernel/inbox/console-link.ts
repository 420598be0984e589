/** A list of the console with a filter, as its search box writes it. */
export function listLink(path: string, terms: Readonly<Record<string, string>>): string {
  const text = Object.entries(terms)
    .map(([name, value]) => `${name}:${quoted(value)}`)
    .join(' ');
  return `${path}?q=${encodeURIComponent(text)}`;
}

function quoted(value: string): string {
  return /^[^\s"]+$/.test(value) ? value : `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
