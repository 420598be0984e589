/** The request of an order to a mail server; `to` defaults to the destination's recipients. */
export type Mail = Readonly<{
  subject: string;
  text: string;
  html: string | undefined;
  to: readonly string[] | undefined;
}>;

/**
 * Parses a request, or returns what is wrong with it. Only strings are accepted: the mail library would treat an object
 * as a file or URL to read from.
 */
export function readMail(request: string): Mail | string {
  const { subject, text, html, to } = parseObject(request);
  if (typeof subject !== 'string') return 'subject must be a string';
  if (typeof text !== 'string') return 'text must be a string';
  if (html !== undefined && typeof html !== 'string') return 'html must be a string';
  const recipients = typeof to === 'string' ? [to] : to;
  if (recipients !== undefined && !isTexts(recipients)) return 'to must be a string or a list of strings';
  return { subject, text, html, to: recipients };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');
}
