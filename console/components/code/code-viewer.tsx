import {
  codeFolding,
  ensureSyntaxTree,
  foldEffect,
  foldGutter,
  foldKeymap,
  unfoldAll,
} from '@codemirror/language';
import { defaultKeymap } from '@codemirror/commands';
import { openSearchPanel, search, searchKeymap } from '@codemirror/search';
import { EditorState, type Extension } from '@codemirror/state';
import {
  Decoration,
  EditorView,
  keymap,
  lineNumbers,
  MatchDecorator,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from '@codemirror/view';
import { useEffect, useRef, useState } from 'react';
import { Button } from '../button/button.tsx';
import { usePageKeys } from '../navigation/use-page-keys.ts';
import protection from '../protection/protection.module.css';
import { protectionTexts } from '../protection/texts/protection-texts.ts';
import { useText } from '../text/use-text.ts';
import type { CodeTextProps } from './code-text.tsx';
import styles from './code.module.css';
import { boundedHeight, editorSetup, jsonSetup } from './editor-setup.ts';
import { codeTexts } from './texts/code-texts.ts';

/** A text that is read, not changed: lines with numbers, find, and JSON that folds. Only what is on screen is drawn. */
export function CodeViewer({ text, label, isJson, hasInvalidBytes, isFindable = false }: CodeTextProps) {
  const t = useText(codeTexts);
  const masks = useText(protectionTexts);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<EditorView | null>(null);
  useEffect(() => {
    if (box.current === null) return;
    const extensions = [
      editorSetup(t, label),
      viewing,
      markMatches(/\[masked(?::[a-p]{16})?\]/g, (found) => ({
        class: protection['mask'] ?? '',
        title: found.includes(':') ? masks.maskedWithHash : masks.maskedByRule,
      })),
      ...(isJson ? [jsonSetup(), codeFolding(), foldGutter(), keymap.of(foldKeymap)] : []),
      ...(hasInvalidBytes ? [markMatches(/⟨[0-9a-f]{2}⟩/g, () => ({ class: styles['invalid'] ?? '' }))] : []),
    ];
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({ doc: text, extensions }),
    });
    setView(made);
    return () => made.destroy();
  }, [text, label, isJson, hasInvalidBytes, t, masks]);
  const find = (): void => void (view !== null && openSearchPanel(view));
  usePageKeys(isFindable ? { '$mod+KeyF': find } : {});
  return (
    <div className={styles['viewer']}>
      <div className={styles['tools']}>
        <Button kind="quiet" {...(isFindable ? { keys: 'Control+F' } : {})} onPress={find}>
          {t.find}
        </Button>
        {isJson ? (
          <>
            <Button kind="quiet" onPress={() => view !== null && foldMembers(view)}>
              {t.fold}
            </Button>
            <Button kind="quiet" onPress={() => view !== null && unfoldAll(view)}>
              {t.unfold}
            </Button>
          </>
        ) : null}
      </div>
      <div ref={box} />
    </div>
  );
}

const viewing: Extension = [
  EditorState.readOnly.of(true),
  boundedHeight,
  // The caret stays, so that lines are read, selected and folded by keyboard; phones need no keys for that.
  EditorView.contentAttributes.of({ inputmode: 'none' }),
  lineNumbers(),
  search({ top: true }),
  keymap.of([...searchKeymap, ...defaultKeymap]),
];

/** Marks every match on screen. */
function markMatches(
  regexp: RegExp,
  attributesOf: (found: string) => Readonly<{ class: string; title?: string }>,
): Extension {
  const matcher = new MatchDecorator({
    regexp,
    decoration: ([found]) => Decoration.mark({ tagName: 'mark', attributes: attributesOf(found) }),
  });
  return ViewPlugin.fromClass(
    class {
      marks: DecorationSet;
      constructor(view: EditorView) {
        this.marks = matcher.createDeco(view);
      }
      update(update: ViewUpdate): void {
        this.marks = matcher.updateDeco(update, this.marks);
      }
    },
    { decorations: ({ marks }) => marks },
  );
}

const parsingMs = 500;

/** Folds the members of the outermost object or array, so that its outline is seen. */
function foldMembers(view: EditorView): void {
  const tree = ensureSyntaxTree(view.state, view.state.doc.length, parsingMs);
  const outermost = tree?.topNode.firstChild;
  if (outermost == null) return;
  const effects = [];
  for (let member = outermost.firstChild; member !== null; member = member.nextSibling) {
    const value = member.name === 'Property' ? member.lastChild : member;
    if (value !== null && /^(Object|Array)$/.test(value.name) && value.to - value.from > 2)
      effects.push(foldEffect.of({ from: value.from + 1, to: value.to - 1 }));
  }
  view.dispatch({ effects });
}
