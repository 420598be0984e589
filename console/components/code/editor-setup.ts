import { json } from '@codemirror/lang-json';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, highlightSpecialChars } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import type { TextsLike } from '../../lib/text/catalogue.ts';
import type { en } from './texts/en.ts';

/** What every editor shares: the policy of the page, exact line ends, the look, and the texts of its buttons. */
export function editorSetup(t: TextsLike<typeof en>, label: string): Extension {
  return [
    EditorView.cspNonce.of(nonceOfPage()),
    // Otherwise \r\n would become \n: a text keeps every byte that nobody has changed.
    EditorState.lineSeparator.of('\n'),
    EditorState.phrases.of(phrasesOf(t)),
    EditorView.contentAttributes.of({ 'aria-label': label, spellcheck: 'false', tabindex: '0' }),
    EditorView.lineWrapping,
    highlightSpecialChars(),
    look,
  ];
}

/** JSON, with quiet colours: those of states have a meaning. */
export function jsonSetup(): Extension {
  return [json(), syntaxHighlighting(jsonLook)];
}

function nonceOfPage(): string {
  return document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce ?? '';
}

function phrasesOf(t: TextsLike<typeof en>): Readonly<Record<string, string>> {
  return {
    Find: t.find,
    next: t.next,
    previous: t.previous,
    all: t.all,
    'match case': t.matchCase,
    regexp: t.regexp,
    'by word': t.byWord,
    close: t.close,
    'current match': t.currentMatch,
    'on line': t.onLine,
    'folded code': t.foldedCode,
    unfold: t.unfold,
    'Fold line': t.foldLine,
    'Unfold line': t.unfoldLine,
    '$ unchanged lines': t.unchangedLines,
    'Control character': t.controlCharacter,
  };
}

/** For an editor that stands alone, and scrolls by itself. */
export const boundedHeight: Extension = EditorView.theme({
  '&': { maxHeight: '60vh' },
  '@media print': { '&': { maxHeight: 'none' } },
});

const jsonLook = HighlightStyle.define([
  { tag: tags.propertyName, fontWeight: '600' },
  { tag: [tags.separator, tags.squareBracket, tags.brace], color: 'var(--text-third)' },
  { tag: tags.string, color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--text-second)', fontStyle: 'italic' },
]);

const look = EditorView.theme({
  '&': {
    border: '1px solid var(--border-control)',
    borderRadius: 'var(--radius)',
    background: 'var(--surface)',
    color: 'var(--text)',
  },
  '&.cm-focused': { outline: '2px solid var(--primary)', outlineOffset: '1px' },
  '.cm-scroller': { font: 'var(--size-mono) / 1.25rem var(--mono)', overflow: 'auto' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-gutters': {
    border: '0',
    background: 'var(--surface-subtle)',
    color: 'var(--text-third)',
  },
  '.cm-foldPlaceholder': {
    margin: '0 4px',
    padding: '0 4px',
    border: '1px solid var(--border-control)',
    background: 'var(--surface-hover)',
    color: 'var(--text-second)',
  },
  '.cm-specialChar': { color: 'var(--status-attention)' },
  '.cm-searchMatch': { background: 'transparent', outline: '1px solid var(--status-retry)' },
  '.cm-searchMatch-selected': { background: 'var(--surface-selected)', outlineWidth: '2px' },
  '.cm-panels': { background: 'var(--surface-subtle)', color: 'var(--text)', zIndex: '2' },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--border)' },
  '.cm-panel.cm-search': {
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: '4px 8px',
    padding: '4px 32px 4px 8px',
    font: 'var(--size-control) / 1.25rem var(--font)',
  },
  '.cm-panel.cm-search br': { display: 'none' },
  '.cm-panel.cm-search label': {
    display: 'inline-flex',
    alignItems: 'center',
    gap: '4px',
    fontSize: 'inherit',
  },
  '.cm-panel.cm-search [name=close]': { top: '4px', right: '4px', minWidth: '24px', minHeight: '24px' },
  '.cm-textfield, .cm-button': {
    minHeight: '24px',
    margin: '0',
    padding: '0 8px',
    border: '1px solid var(--border-control)',
    borderRadius: 'var(--radius)',
    background: 'var(--surface)',
    backgroundImage: 'none',
    color: 'var(--text)',
    fontSize: 'inherit',
  },
  '.cm-changedLine, .cm-insertedLine': { background: 'var(--surface-hover)' },
  '.cm-deletedLine, .cm-deletedChunk': { background: 'var(--surface-hover)' },
  '&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText': {
    background: 'none',
    color: 'var(--status-attention)',
    textDecoration: 'line-through',
  },
  '&.cm-merge-b .cm-changedText, .cm-changedText': {
    background: 'none',
    color: 'var(--status-done)',
    textDecoration: 'underline 2px',
  },
  '&.cm-merge-a .cm-changedLineGutter': { background: 'var(--status-attention)' },
  '&.cm-merge-b .cm-changedLineGutter': { background: 'var(--status-done)' },
  '.cm-collapsedLines': {
    padding: '2px 8px',
    background: 'var(--surface-subtle)',
    color: 'var(--text-second)',
    fontFamily: 'var(--font)',
  },
});
