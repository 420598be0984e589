/**
 * The only door to the types of the API. They are written from the OpenAPI document of the server and cost nothing at
 * run time.
 */
export type * from '../../src/client-http/generated/schemas.ts';
export type { Operations } from '../../src/client-http/generated/operation-shapes.ts';
