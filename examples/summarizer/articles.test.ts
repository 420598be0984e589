import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import { kindOf, summaryOf, writeArticle } from './articles.ts';

test('an article says what it is by its id, and the same seed writes the same one', () => {
  for (const kind of ['news', 'long-read', 'withdrawn'] as const) {
    const article = writeArticle({ run: 'ab12cd', number: 7, kind, chance: chanceFrom('any') });
    assert.equal(article.article_id, `${kind}-ab12cd-0007`);
    assert.equal(kindOf(article.article_id), kind);
    assert.deepEqual(article, writeArticle({ run: 'ab12cd', number: 7, kind, chance: chanceFrom('any') }));
  }
});

test('a summary is the first sentence', () => {
  const article = { article_id: 'a', title: 'A', text: 'The port opens. Nobody came! Why?' };
  assert.deepEqual(summaryOf(article), { summary: 'The port opens.', words: 6 });
  assert.deepEqual(summaryOf({ ...article, text: '' }), { summary: '', words: 1 });
});
