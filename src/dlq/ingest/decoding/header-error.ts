/** An error as the headers describe it, wrapped or unwrapped. */
export type HeaderError = Readonly<{
  message: string | undefined;
  class: string | undefined;
  stack: string | undefined;
}>;
