import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import { Button } from './button.tsx';
import { copyText } from './copy-text.ts';

const shownMs = 2000;

/** `what` names the text in the button's label; `text` may be made only when it is needed. */
export function CopyButton({ what, text }: Readonly<{ what: string; text: string | (() => string) }>) {
  const t = useText(kitTexts);
  const [outcome, setOutcome] = useState<'none' | 'copied' | 'failed'>('none');
  useEffect(() => {
    if (outcome === 'none') return;
    const timer = setTimeout(() => setOutcome('none'), shownMs);
    return () => clearTimeout(timer);
  }, [outcome]);
  const copy = async (): Promise<void> => {
    const isCopied = await copyText(typeof text === 'string' ? text : text());
    setOutcome(isCopied ? 'copied' : 'failed');
  };
  return (
    <>
      <Button kind="quiet" label={t.copyThing(what)} onPress={() => void copy()}>
        {outcome === 'copied' ? <Check size={14} aria-hidden /> : <Copy size={14} aria-hidden />}
      </Button>
      <span role="status" className="visually-hidden">
        {outcome === 'copied' ? t.copied : outcome === 'failed' ? t.copyFailed : ''}
      </span>
    </>
  );
}
