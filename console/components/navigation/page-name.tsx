import { createContext, useContext, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';

type PageName = Readonly<{
  /** Of the page on screen; empty while it loads. */
  name: string;
  setName(name: string): void;
  /** False once: the first page gets the focus from the browser. */
  takesFocus(): boolean;
}>;

const PageNameContext = createContext<PageName>({ name: '', setName: () => {}, takesFocus: () => false });

/** Lets a page tell the frame how it is called. */
export function PageNameProvider({ children }: Readonly<{ children: ReactNode }>) {
  const [name, setName] = useState('');
  const isFirst = useRef(true);
  const value = useMemo(
    () => ({
      name,
      setName,
      takesFocus: () => {
        const takes = !isFirst.current;
        isFirst.current = false;
        return takes;
      },
    }),
    [name],
  );
  return <PageNameContext value={value}>{children}</PageNameContext>;
}

export function usePageName(): PageName {
  return useContext(PageNameContext);
}

/** Names the page in the breadcrumb and in the title of the document, as long as it is on screen. */
export function useNamedPage(name: string): void {
  const { setName } = usePageName();
  useEffect(() => {
    setName(name);
    return () => setName('');
  }, [name, setName]);
}
