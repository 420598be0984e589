/** Under which the navigation keeps the counts of the inbox; its page has newer ones while it is open. */
export const inboxCountKey = ['inbox', 'counts'] as const;
