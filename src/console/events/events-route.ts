import { Type } from 'typebox';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { sendEvents } from '../../platform/http/streams/send-events.ts';
import type { ChangeHub } from './change-hub.ts';

const EventsResponse: Readonly<Record<string, unknown>> = {
  description: 'Server-sent events.',
  content: {
    'text/event-stream': {
      schema: Type.String({
        examples: [
          'event: change\ndata: {"slice":"dlq","ids":["0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31"],"many":false,"counts":{"needs_attention":12}}\nid: 0197f3c2-41\n\n',
        ],
      }),
    },
  },
};

export function addEventsRoute(app: HttpApp, hub: ChangeHub): void {
  app.get(
    '/api/v1/events',
    {
      // A HEAD request would read the whole stream.
      exposeHeadRoute: false,
      config: { access: 'authenticated' },
      schema: {
        operationId: 'followChanges',
        summary: 'Follow what changes, by server-sent events',
        description:
          'For pages that show lists: it says what to read again, not what has changed in it. `change` has a slice and the ids of the changed items that the caller may see, or `many` for more than 50 or for other changes, and how many items of the slice need attention (null if they could not be counted). `redrive` has the redrives that go on, with their counts, at most once a second. `resync`: read everything again. `beat`: nothing was missed until now. `bye`: the server stops; connect again. With `Last-Event-ID` a stream continues where the last one ended if it is the same process and not long ago, else it begins with `resync`. At most four events a second; 8 streams for one principal.',
        errors: [429],
        response: { 200: EventsResponse },
      },
    },
    async (request, reply) => {
      const { 'last-event-id': lastEventId } = request.headers;
      const last = typeof lastEventId === 'string' ? lastEventId : undefined;
      return sendEvents(reply, await hub.open(() => request.principal, last));
    },
  );
}
