/** What the server wrote into the page. */
export type PageFacts = Readonly<{
  /** The path below which the console is served; empty at the root. */
  prefix: string;
  environment: string;
  /** Where to log in; null if the server has no sessions. */
  login: string | null;
}>;

const noFacts: PageFacts = { prefix: '', environment: '', login: null };

export function readPageFacts(page: Pick<Document, 'getElementById'>): PageFacts {
  const text = page.getElementById('page-facts')?.textContent;
  return text == null ? noFacts : { ...noFacts, ...(JSON.parse(text) as Partial<PageFacts>) };
}

/** Where a mistake costs most: what cannot be undone has to be typed. */
export function isProduction(environment: string): boolean {
  return /^prod(uction)?$/i.test(environment);
}
