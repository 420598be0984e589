import type { Me } from './server-shapes.ts';

/** Whether what is stored is about the user. Without authentication the server stores `anonymous` for everybody. */
export function isMe(me: Pick<Me, 'subject' | 'type'>, subject: string | undefined): boolean {
  return subject === me.subject || (me.type === 'local' && subject === 'anonymous');
}
