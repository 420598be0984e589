import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BuiltAssets } from './built-assets.ts';
import { policyFor, renderNotice, renderPage } from './render-page.ts';

const assets: BuiltAssets = {
  files: new Map(),
  entry: { script: '/assets/a.js', styles: ['/assets/a.css'], preloads: ['/assets/b.js'] },
};

test('the page loads its files below the prefix', () => {
  const page = renderPage(assets, { prefix: '/ops/redrive', environment: 'dev', login: null }, 'n0nce');
  assert.match(page, /<script type="module" src="\/ops\/redrive\/assets\/a\.js">/);
  assert.match(page, /href="\/ops\/redrive\/assets\/a\.css"/);
  assert.match(page, /modulepreload" href="\/ops\/redrive\/assets\/b\.js"/);
  assert.match(page, /nonce="n0nce"/);
  assert.match(policyFor('n0nce'), /style-src 'self' 'nonce-n0nce'/);
});

test('a value in the page ends neither its element nor its string', () => {
  const environment = '</script><script>alert(1)</script>"';
  const page = renderPage(assets, { prefix: '"><b>', environment, login: null }, 'n');
  assert.doesNotMatch(page, /<b>|alert\(1\)<\/script>/);
  const [, text = ''] = /id="page-facts">(.*)<\/script>/.exec(page) ?? [];
  assert.equal((JSON.parse(text) as { environment: string }).environment, environment);
  assert.doesNotMatch(renderNotice('<i>', '<img src=x>', 2), /<i>|<img/);
});
