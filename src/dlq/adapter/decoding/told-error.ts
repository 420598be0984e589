/** An error as the headers tell it, or as a dialect explains it. */
export type ToldError = Readonly<{
  message: string | undefined;
  class: string | undefined;
  stack: string | undefined;
}>;
