import { stepInto, strongest, type Place } from './field-paths.ts';
import { MASK } from './mask.ts';
import type { ProtectAction } from './protect-rule.ts';

/** How the leaves of a document are shown. */
export type LeafMask = Readonly<{
  cover: (text: string, action: ProtectAction) => string;
  /** A text that no path protects, with what its patterns find covered. */
  inText: (text: string) => string;
  /** The same for the name of a field. */
  inName: (name: string) => string;
}>;

export type MaskedJson = Readonly<{
  /** As it was, blanks included, if nothing in it is protected. */
  text: string;
  isChanged: boolean;
  /** The text is the beginning of a document, and its last value was left out. */
  isCut: boolean;
}>;

/** An object or array that is open at this place of the text. */
type Frame = {
  readonly parent: Frame | null;
  readonly isArray: boolean;
  readonly place: Place;
  /** What holds for all leaves in it, because a path names it or what it is in. */
  readonly action: ProtectAction | null;
  /** It is part of a field that is left out. */
  readonly isDropped: boolean;
  /** Items read, and items shown. */
  read: number;
  shown: number;
  /** The name that awaits its value. */
  name: string | null;
};

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** So much longer than twice the text may be what is shown of it. */
const roomChars = 1024;

/** Masks of short values are longer than these. What would be far longer than it was is covered as a whole. */
export function growsTooMuch(text: string, shownChars: number): boolean {
  return shownChars > 2 * text.length + roomChars;
}

/** A text may hold JSON, whose fields are protected too; this deep. */
const maxNesting = 4;

/**
 * The JSON text with its protected leaves covered. It is rewritten token by token in one pass, so numbers stay as they
 * are, a field that is there twice is covered twice, and depth costs no stack. Objects and arrays keep their form: every
 * leaf of a protected one is covered. The text may end before the document does. Null if it is no JSON, or if it would grow
 * too much.
 */
export function maskJson(text: string, place: Place, leaf: LeafMask, nesting = 0): MaskedJson | null {
  const reader = new Rewriter(text, place, leaf, nesting);
  return reader.run();
}

class Rewriter {
  readonly #text: string;
  readonly #root: Place;
  readonly #leaf: LeafMask;
  readonly #nesting: number;
  #at = 0;
  #out = '';
  #isChanged = false;
  #frame: Frame | null = null;

  constructor(text: string, root: Place, leaf: LeafMask, nesting: number) {
    this.#text = text;
    this.#root = root;
    this.#leaf = leaf;
    this.#nesting = nesting;
  }

  run(): MaskedJson | null {
    for (;;) {
      if (growsTooMuch(this.#text, this.#out.length)) return null;
      const code = this.#skipSeparators();
      if (Number.isNaN(code)) return this.#frame === null ? null : this.#result(true);
      const frame = this.#frame;
      if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
        if (frame === null || frame.isArray !== (code === CLOSE_ARRAY) || frame.name !== null) return null;
        this.#at += 1;
        if (!frame.isDropped) this.#out += code === CLOSE_ARRAY ? ']' : '}';
        this.#frame = frame.parent;
      } else if (frame !== null && !frame.isArray && frame.name === null) {
        if (code !== QUOTE) return null;
        const name = this.#readString();
        if (name === undefined) return this.#result(true);
        if (name === null) return null;
        frame.name = name;
        continue;
      } else {
        const done = this.#readValue(code);
        if (done !== 'read') return done === 'cut' ? this.#result(true) : null;
      }
      if (this.#frame === null) return this.#restIsEmpty() ? this.#result(false) : null;
    }
  }

  #readValue(code: number): 'read' | 'cut' | 'invalid' {
    const frame = this.#frame;
    const place = this.#placeOfValue(frame);
    const action = strongest(frame?.action ?? null, place.action);
    const isDropped = (frame?.isDropped ?? false) || (place.action === 'drop' && frame?.name != null);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      this.#show(frame, isDropped, String.fromCharCode(code));
      const isArray = code === OPEN_ARRAY;
      this.#frame = { parent: frame, isArray, place, action, isDropped, read: 0, shown: 0, name: null };
      this.#at += 1;
      return 'read';
    }
    const start = this.#at;
    const value = code === QUOTE ? this.#readString() : this.#readWord();
    if (value === undefined) return 'cut';
    if (value === null) return 'invalid';
    const token = this.#text.slice(start, this.#at);
    this.#show(frame, isDropped, this.#shownLeaf(token, value, place, action));
    return 'read';
  }

  #placeOfValue(frame: Frame | null): Place {
    if (frame === null) return this.#root;
    return stepInto(frame.place, frame.isArray ? String(frame.read) : (frame.name ?? ''));
  }

  #shownLeaf(token: string, value: string, place: Place, action: ProtectAction | null): string {
    if (action !== null) {
      const covered = JSON.stringify(this.#leaf.cover(value, action));
      if (covered !== token) this.#isChanged = true;
      return covered;
    }
    if (token.startsWith('"') && /^\s*[{[]/.test(value) && this.#nesting < maxNesting && isJson(value)) {
      const inner = maskJson(value, place, this.#leaf, this.#nesting + 1);
      return this.#tokenOf(token, value, inner?.text ?? MASK);
    }
    return this.#tokenOf(token, value, /^[tfn]/.test(token) ? value : this.#leaf.inText(value));
  }

  #tokenOf(token: string, value: string, shown: string): string {
    if (shown === value) return token;
    this.#isChanged = true;
    return JSON.stringify(shown);
  }

  /** Writes a value, behind its name in an object. */
  #show(frame: Frame | null, isDropped: boolean, token: string): void {
    if (frame === null) {
      this.#out += token;
      return;
    }
    const { name } = frame;
    frame.name = null;
    frame.read += 1;
    if (isDropped) {
      this.#isChanged = true;
      return;
    }
    if (frame.shown > 0) this.#out += ', ';
    if (name !== null) this.#out += `${this.#tokenOf(JSON.stringify(name), name, this.#leaf.inName(name))}: `;
    this.#out += token;
    frame.shown += 1;
  }

  /** What was read; of a text that is cut without the value in which it ends. */
  #result(isCut: boolean): MaskedJson {
    const isChanged = this.#isChanged;
    return { text: isChanged || isCut ? this.#out : this.#text, isChanged, isCut };
  }

  #skipSeparators(): number {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code > 0x20 && code !== COMMA && code !== COLON) return code;
      if (Number.isNaN(code)) return code;
      this.#at += 1;
    }
  }

  #restIsEmpty(): boolean {
    return Number.isNaN(this.#skipSeparators());
  }

  /** Undefined if the text ends in it, null if it is none. */
  #readString(): string | null | undefined {
    const open = this.#at;
    for (let close = open + 1; ; close += 1) {
      close = this.#text.indexOf('"', close);
      if (close === -1) return undefined;
      let from = close;
      while (this.#text.charCodeAt(from - 1) === BACKSLASH) from -= 1;
      if ((close - from) % 2 === 1) continue;
      this.#at = close + 1;
      return parseString(this.#text.slice(open, close + 1));
    }
  }

  /** A number, true, false or null, as it is written. */
  #readWord(): string | null | undefined {
    const start = this.#at;
    const letters = /[\w.+-]*/y;
    letters.lastIndex = start;
    const word = letters.exec(this.#text)?.[0] ?? '';
    this.#at += word.length;
    if (this.#at === this.#text.length && this.#frame !== null) return undefined;
    return /^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(word) ? word : null;
  }
}

function parseString(token: string): string | null {
  try {
    return JSON.parse(token) as string;
  } catch {
    return null;
  }
}

/** Whether a text is a whole document. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
