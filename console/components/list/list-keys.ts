/** What a key means in a list. Others are given to the screen. */
export type ListKey =
  | Readonly<{ does: 'move'; by: number; extends: boolean }>
  | Readonly<{ does: 'first' | 'last' | 'peek' | 'select' | 'selectShown' | 'selectMatching' | 'leave' }>;

type Pressed = Readonly<{
  key: string;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}>;

/** `hasLetters` is false for those who switched off keys without a modifier. */
export function readListKey(pressed: Pressed, hasLetters: boolean): ListKey | null {
  const { key, shiftKey, ctrlKey, metaKey, altKey } = pressed;
  if (ctrlKey || metaKey || altKey) return null;
  switch (key) {
    case 'ArrowDown':
    case 'ArrowUp':
      return { does: 'move', by: key === 'ArrowDown' ? 1 : -1, extends: shiftKey };
    case 'Home':
    case 'End':
      return { does: key === 'Home' ? 'first' : 'last' };
    case 'Escape':
      return { does: 'leave' };
    case ' ':
      return shiftKey ? null : { does: 'peek' };
    default:
      return hasLetters ? readLetter(key) : null;
  }
}

function readLetter(key: string): ListKey | null {
  switch (key) {
    case 'j':
    case 'J':
      return { does: 'move', by: 1, extends: key === 'J' };
    case 'k':
    case 'K':
      return { does: 'move', by: -1, extends: key === 'K' };
    case 'x':
      return { does: 'select' };
    case 'a':
      return { does: 'selectShown' };
    case 'A':
      return { does: 'selectMatching' };
    default:
      return null;
  }
}

/** Whether somebody is typing there, so that letters are letters. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (
    target.isContentEditable ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  )
    return true;
  return target instanceof HTMLInputElement && target.type !== 'checkbox' && target.type !== 'radio';
}
