import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { jsonParseLinter } from '@codemirror/lang-json';
import { linter } from '@codemirror/lint';
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { useEffect, useRef } from 'react';
import { useText } from '../text/use-text.ts';
import type { DiffEditorProps } from './diff-editor.tsx';
import styles from './code.module.css';
import { boundedHeight, editorSetup, jsonSetup } from './editor-setup.ts';
import { codeTexts } from './texts/code-texts.ts';

/** Two columns of a smaller page would have a word or two in a line. */
const twoSides = '(width >= 900px)';

/** What is stored on the left, the new text on the right, equal lines side by side; one below the other where it is narrow. */
export function MergeEditor(props: DiffEditorProps) {
  const { label, beforeLabel, before, value, isJson, isInvalid = false, onChange } = props;
  const t = useText(codeTexts);
  const box = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(null);
  const latest = useRef({ value, onChange });
  useEffect(() => {
    latest.current = { value, onChange };
    const shown = editor.current;
    // Somebody else than the editor has changed it: the draft was dropped.
    if (shown !== null && shown.state.doc.toString() !== value)
      shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: value } });
  });
  const isWide = matchMedia(twoSides).matches;
  useEffect(() => {
    if (box.current === null) return;
    const follow = EditorView.updateListener.of(({ docChanged, state }) => {
      const now = state.doc.toString();
      if (docChanged && now !== latest.current.value) latest.current.onChange(now);
    });
    const shared: Extension = isJson ? jsonSetup() : [];
    const changing = [
      editorSetup(t, label),
      shared,
      editing,
      follow,
      ...(isJson ? [linter(jsonParseLinter())] : []),
    ];
    const doc = latest.current.value;
    const made = isWide
      ? new MergeView({
          parent: box.current,
          a: { doc: before, extensions: [editorSetup(t, beforeLabel), shared, reading] },
          b: { doc, extensions: changing },
          diffConfig,
        })
      : new EditorView({
          parent: box.current,
          doc,
          extensions: [
            ...changing,
            boundedHeight,
            unifiedMergeView({ original: before, mergeControls: false, diffConfig }),
          ],
        });
    editor.current = made instanceof MergeView ? made.b : made;
    return () => {
      editor.current = null;
      made.destroy();
    };
  }, [before, beforeLabel, label, isJson, isWide, t]);
  useEffect(() => {
    editor.current?.contentDOM.setAttribute('aria-invalid', String(isInvalid));
  }, [isInvalid]);
  return (
    <div>
      <div className={styles['heads']} data-sides={isWide ? 'two' : 'one'} aria-hidden>
        {isWide ? <span>{beforeLabel}</span> : null}
        <span>{label}</span>
      </div>
      <div ref={box} className={styles['merge']} />
    </div>
  );
}

/** A diff must not stop the page; what is not compared in time counts as replaced. */
const diffConfig = { scanLimit: 1000, timeout: 100 };

const reading: Extension = [EditorState.readOnly.of(true), lineNumbers(), keymap.of(defaultKeymap)];

/**
 * Replaces a selection without the browser, which would give the new text the look of the old one in a `style`
 * attribute: the policy of the page refuses those. The editor hears of a selection a moment after the browser; of a long
 * text the browser knows only the lines on screen.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event;
    const { main } = view.state.selection;
    const [range] = event.getTargetRanges();
    if (inputType !== 'insertText' || data === null) return false;
    if (main.empty && range?.collapsed !== false) return false;
    const from =
      range === undefined || !main.empty ? main.from : view.posAtDOM(range.startContainer, range.startOffset);
    const to =
      range === undefined || !main.empty ? main.to : view.posAtDOM(range.endContainer, range.endOffset);
    const insert = view.state.toText(data);
    view.dispatch({
      changes: { from, to, insert },
      selection: { anchor: from + insert.length },
      userEvent: 'input.type',
      scrollIntoView: true,
    });
    return true;
  },
});

/** `Ctrl Enter` is the key of the page that confirms. */
const editingKeys = defaultKeymap.filter(({ key }) => key !== 'Mod-Enter');

/** Tab stays the way to the next field. */
const editing: Extension = [
  lineNumbers(),
  history(),
  replacing,
  search({ top: true }),
  keymap.of([...searchKeymap, ...historyKeymap, ...editingKeys]),
];
