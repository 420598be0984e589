/** The headers of a republished record; they identify it if it comes back as a dead letter. */
export const redriveHeaders = {
  messageId: 'redrive-message-id',
  attempt: 'redrive-attempt',
  originalTimestamp: 'redrive-original-timestamp',
  /** Only of an edited record. */
  version: 'redrive-version',
} as const;
