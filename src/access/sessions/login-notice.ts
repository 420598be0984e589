/** A page for a person whose login has failed. It has no scripts and loads nothing. */
export function renderLoginNotice(message: string, retry: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>Login failed · Redrive</title></head>
<body><main><h1>Login failed</h1><p>${escapeHtml(message)}</p><p><a href="${escapeHtml(retry)}">Log in again</a></p></main></body></html>
`;
}

export const noticePolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
