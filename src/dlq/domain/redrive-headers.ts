/** The headers that a republished record carries, and by which it is known again when it comes back dead. */
export const redriveHeaders = {
  messageId: 'redrive-message-id',
  attempt: 'redrive-attempt',
  originalTimestamp: 'redrive-original-timestamp',
} as const;
