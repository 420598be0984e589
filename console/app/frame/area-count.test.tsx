import { screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import { cleanUpAfterEach, renderInPage } from '../../components/testing/render-in-page.tsx';
import { ShownFigure, sliceFigure } from './area-count.tsx';

cleanUpAfterEach();

test('a count that is not heard of is unknown, never none', () => {
  expect(sliceFigure(null, 'live', 'unknown')).toBe('unknown');
  expect(sliceFigure(3, 'polling', 'unknown')).toBe('unknown');
  expect(sliceFigure(3, 'away', 'unknown')).toBe('unknown');
  expect(sliceFigure(0, 'live', 'unknown')).toEqual({ count: 0, isAtLeast: false });
  expect(sliceFigure(3, 'connecting', 'unknown')).toEqual({ count: 3, isAtLeast: false });
});

test('what is counted only up to a bound says so', async () => {
  expect(sliceFigure(10_000, 'live', '')).toEqual({ count: 10_000, isAtLeast: true });
  await renderInPage(<ShownFigure figure={{ count: 10_000, isAtLeast: true }} />);
  expect(screen.getByText(/10.000\+ need attention/)).toBeTruthy();
});

test('screen readers hear why there is no figure, and nobody sees one', async () => {
  const { redraw } = await renderInPage(<ShownFigure figure="The server cannot be reached" />);
  expect(screen.getByText(/cannot be reached/).className).toBe('visually-hidden');
  expect(document.body.textContent).not.toMatch(/\d/);
  await redraw(<ShownFigure figure={{ count: 0 }} />);
  expect(screen.getByText(/None needs attention/)).toBeTruthy();
});
