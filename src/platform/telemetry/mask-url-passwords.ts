const beginOfUser = /:\/\//g;
const endOfUser = /[/@:\s"]|$/g;
/** Or the end of the URL, if it has no password. */
const endOfPassword = /@(?=[\w.[-])|[\s"]|$/g;

/**
 * `scheme://user:secret@host` becomes `scheme://user:***@host`. Blanks and quotes end a URL. One pass, because the text may
 * be a megabyte of hostile input.
 */
export function maskUrlPasswords(text: string): string {
  let masked = '';
  let copied = 0;
  for (let at = endOf(beginOfUser, text, 0); at >= 0; at = endOf(beginOfUser, text, at)) {
    at = indexOf(endOfUser, text, at);
    if (text[at] !== ':') continue;
    const end = indexOf(endOfPassword, text, at + 1);
    if (text[end] === '@') {
      masked += `${text.slice(copied, at)}:***`;
      copied = end;
    }
    at = end;
  }
  return masked + text.slice(copied);
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? -1;
}

function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : -1;
}
