/**
 * What attacks the terminal of its reader: control characters of both ranges, escape sequences of colours, titles,
 * links and the clipboard, marks that reorder or hide text, line ends, and tags that nobody sees.
 */
export const attacks: readonly string[] = [
  '\u001b[2J\u001b[31mforged',
  '\u001b]0;forged\u0007',
  '\u001b]8;;http://evil.example/\u001b\\forged\u001b]8;;\u001b\\',
  '\u001b]52;c;Zm9yZ2Vk\u0007forged',
  '\u009b31mforged\u009d0;x\u009c',
  '\u202eforged\u202c\u2066x\u2069\u200e\u200f\u061c',
  'a\r\nforged\u2028forged\u2029forged\u0085forged',
  'for\u200bged\u2060\ufeff\u00ad\u{e0041}\u{e007f}',
  '\b\b\bforged\u007f\0\u000b\u000c',
];
export const allAttacks = attacks.join(' ');
/** What may stand in no line that is printed or logged. */
export const harmful = /[\p{Cc}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/u;
