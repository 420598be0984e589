import type { Printer } from '../output/printer.ts';

/** Says how to see what is masked. */
export function noteMasks(print: Printer, { masked }: Readonly<{ masked?: true }>, command: string): void {
  if (masked === true) print.note(`parts are masked; with the permission, ${command} shows them`);
}
