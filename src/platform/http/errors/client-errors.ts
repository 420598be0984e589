import { STATUS_CODES } from 'node:http';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { codeOf } from '../../../kernel/errors.ts';
import type { Connections } from '../guards/connections.ts';
import { securityHeaders } from '../guards/security-headers.ts';
import { errorAnswer, HTTP_SLICE } from './error-answer.ts';
import { HttpFault } from './http-fault.ts';
import { newRequestId } from '../request-id.ts';

/** How long a client that sent invalid HTTP has to read the answer before its connection is closed. */
const LINGER_MS = 1000;

/**
 * Sends our error body for input that never becomes a request: not HTTP, head too large, too slow, or an unknown
 * expectation.
 */
export function answerClientErrors(
  server: Server,
  connections: Connections,
  onAnswer: (status: number) => void,
): void {
  function answer(error: Error, socket: Socket): void {
    if (!socket.writable || socket.writableEnded) return;
    const fault = faultOf(error);
    socket.end(rawAnswer(fault));
    const cut = setTimeout(() => socket.destroy(), LINGER_MS);
    socket.once('close', () => clearTimeout(cut));
    onAnswer(fault.statusCode);
  }

  server.on('clientError', (error: Error, stream: Duplex) => {
    const socket = stream as Socket;
    const current = connections.answerOn(socket);
    if (codeOf(error) === 'ECONNRESET' || current?.headersSent === true) {
      socket.destroy();
    } else if (current?.req.complete === true) {
      // The invalid bytes follow a complete request that is still being served: its answer goes first.
      current.once('close', () => answer(error, socket));
    } else {
      answer(error, socket);
    }
  });
  server.on('checkExpectation', (_request, response) => {
    const { status, headers, text } = jsonAnswer(new HttpFault(417, 'the expect header is not supported'));
    response.writeHead(status, headers).end(text);
    onAnswer(status);
  });
}

function faultOf(error: Error): HttpFault {
  switch (codeOf(error) ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return new HttpFault(431, 'the request line and headers are too large');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new HttpFault(413, 'the chunk extensions are too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HttpFault(408, 'timed out waiting for the request');
    default:
      return new HttpFault(400, 'the request is not valid HTTP');
  }
}

function rawAnswer(fault: HttpFault): string {
  const { status, headers, text } = jsonAnswer(fault);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', text].join('\r\n');
}

function jsonAnswer(fault: HttpFault): Readonly<{
  status: number;
  headers: Readonly<Record<string, string>>;
  text: string;
}> {
  const requestId = newRequestId();
  const { status, body } = errorAnswer(fault, HTTP_SLICE, requestId);
  const text = JSON.stringify(body);
  const headers = {
    ...securityHeaders,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    'x-request-id': requestId,
    connection: 'close',
  };
  return { status, headers, text };
}
