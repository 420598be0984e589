import { CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError, messageOf } from '../kernel/errors.ts';
import { escapeLines, escapeText } from '../kernel/escape-text.ts';
import { ApiError } from '../client-http/index.ts';
import { exitCodeOf, SilentFailure, UsageError } from './exit-code.ts';

/** How an error is printed: lines for a person, or with `--json` the same fields as in an answer of the API. */
type Explained = Readonly<{
  code: string;
  message: string;
  details?: ApiError['details'];
  requestId?: string | undefined;
  hints?: readonly string[];
}>;

const loginHint = 'Run `redrive login`, or set REDRIVE_TOKEN or REDRIVE_API_KEY.';

/** Lines for standard error; none if everything has been said already. */
export function explainError(error: unknown, asJson: boolean): readonly string[] {
  if (error instanceof CommanderError || error instanceof SilentFailure) return [];
  const explained = explain(error);
  return (asJson ? [jsonOf(explained, exitCodeOf(error))] : linesOf(error, explained)).flatMap(escapeLines);
}

function explain(error: unknown): Explained {
  if (error instanceof UsageError)
    return { code: 'SYS_CLI_USAGE', message: error.message, details: error.details, hints: error.hints };
  if (error instanceof ConfigError) {
    const details = error.problems.map(({ path, reason }) => ({
      field: path,
      reason: 'invalid',
      message: reason,
    }));
    return { code: 'SYS_CLI_CONFIGURATION', message: error.message, details };
  }
  if (error instanceof ApiError)
    return {
      code:
        error.code ??
        (error.status === undefined ? 'SYS_CLI_SERVER_UNREACHABLE' : 'SYS_CLI_UNEXPECTED_ANSWER'),
      message: error.message,
      details: error.details,
      requestId: error.requestId,
      hints: error.code === 'SYS_AUTH_MISSING_TOKEN' ? [loginHint] : [],
    };
  return { code: error instanceof AppError ? error.code : 'SYS_CLI_ERROR', message: messageOf(error) };
}

function linesOf(
  error: unknown,
  { code, message, details = [], requestId, hints = [] }: Explained,
): readonly string[] {
  if (error instanceof ConfigError) return [message];
  const shownCode = code.startsWith('SYS_CLI_') ? '' : ` (${escapeText(code)})`;
  // Only the server's text comes from outside; ours may have several lines.
  const text = error instanceof ApiError ? escapeText(message) : message;
  return [
    `redrive: ${text}${shownCode}`,
    // A UsageError has them as hints.
    ...(error instanceof UsageError ? [] : details)
      .filter((detail) => detail.message !== message)
      .map((detail) => escapeText(`  ${detail.field}: ${detail.message}`)),
    ...(requestId === undefined ? [] : [`  request id: ${escapeText(requestId)}`]),
    ...hints,
  ];
}

function jsonOf({ code, message, details = [], requestId = '' }: Explained, exitCode: number): string {
  const error = { code, message, request_id: requestId || null, details, exit_code: exitCode };
  return JSON.stringify({ error });
}
