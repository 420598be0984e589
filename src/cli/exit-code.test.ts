import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError } from '../kernel/errors.ts';
import { ApiError } from '../client-http/index.ts';
import { exitCodeOf, SilentFailure, UsageError } from './exit-code.ts';

const codes: readonly (readonly [what: string, error: unknown, code: number])[] = [
  ['help that was asked for', new CommanderError(0, 'commander.helpDisplayed', ''), 0],
  ['an unknown option', new CommanderError(1, 'commander.unknownOption', ''), 2],
  ['wrong usage', new UsageError('give --offset'), 2],
  ['a wrong configuration', new ConfigError([]), 78],
  ['a finding that was said already', new SilentFailure(), 1],
  ['an error without a kind', new Error('boom'), 1],
  ['a service that is away', new AppError('SYS_X', 'unavailable', ''), 69],
  ['a fault inside', new AppError('SYS_X', 'internal', ''), 1],
  ['a server that cannot be reached', new ApiError('nothing listens'), 69],
  ['an answer 400', new ApiError('', { status: 400 }), 2],
  ['an answer 404', new ApiError('', { status: 404 }), 1],
  ['an answer 409', new ApiError('', { status: 409 }), 1],
  ['an answer 500', new ApiError('', { status: 500 }), 1],
  ['an answer 503', new ApiError('', { status: 503 }), 69],
  ['an answer 503 in doubt', new ApiError('', { status: 503, isInDoubt: true }), 1],
  ['a lost answer to an action', new ApiError('', { isInDoubt: true }), 1],
];

for (const [what, error, code] of codes)
  test(`${what} ends with ${code}`, () => assert.equal(exitCodeOf(error), code));
