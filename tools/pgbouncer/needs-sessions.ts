/** Tests that do not run through a pooler in transaction mode, each with the reason. */
export const needsSessions: Readonly<Record<string, string>> = {};
