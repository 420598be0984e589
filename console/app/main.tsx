import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../components/style/global.css';
import { readPageFacts } from '../lib/page-facts.ts';
import { App } from './app.tsx';

const root = document.getElementById('root');
if (root === null) throw new Error('the page has no element with the id root');
createRoot(root).render(
  <StrictMode>
    <App facts={readPageFacts(document)} />
  </StrictMode>,
);
