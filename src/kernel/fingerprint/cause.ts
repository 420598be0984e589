export type Cause = Readonly<{ class: string | undefined; message: string }>;

/** `<class>: <message>`, the class alone, or a message without a class. */
export function causeOf(heading: string): Cause | undefined {
  const text = heading.trim();
  if (text === '') return undefined;
  const found = HEADING.exec(text.slice(0, 512));
  if (found?.[1] === undefined) return { class: undefined, message: text };
  const message = text.slice(found[0].length).trim();
  return { class: found[1], message: message === '' ? found[1] : message };
}

const HEADING = /^([A-Za-z_$][\w$.+`]{0,255})(?: \[\w{1,80}\])?(?:: |:?$)/;
