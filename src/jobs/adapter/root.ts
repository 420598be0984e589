/** Every route of the slice begins with it. */
export const root = '/api/v1/jobs';
