export const languages = ['en', 'ja'] as const;
export type Language = (typeof languages)[number];

/** Texts by name; a text with variable parts is a function. */
export type Texts = Readonly<Record<string, string | ((...parts: never[]) => string)>>;

/** Another language has the same names, and its functions take the same parts. */
export type TextsLike<Of extends Texts> = {
  readonly [Name in keyof Of]: Of[Name] extends (...parts: infer Parts) => string
    ? (...parts: Parts) => string
    : string;
};

/** The texts of one feature in all languages. English is part of the bundle, the others are loaded when chosen. */
export type Catalogue<Of extends Texts> = Readonly<{
  en: Of;
  load(language: Language): Promise<TextsLike<Of>>;
}>;

export function defineCatalogue<const Of extends Texts>(
  en: Of,
  loadJa: () => Promise<TextsLike<Of>>,
): Catalogue<Of> {
  const english = Promise.resolve<TextsLike<Of>>(en as unknown as TextsLike<Of>);
  let ja: Promise<TextsLike<Of>> | undefined;
  return { en, load: (language) => (language === 'en' ? english : (ja ??= loadJa())) };
}
