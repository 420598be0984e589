import type { Workflow } from '../domain/workflow.ts';

export type RegisteredWorkflow = Readonly<{ hash: string; workflow: Workflow }>;

export type WorkflowStore = Readonly<{
  /** Its hash. What comes from a file becomes current only where it was never seen before. */
  register(workflow: Workflow, from: Readonly<{ isFromFile: boolean }>): Promise<string>;
  /** Those that new sagas begin with, by name. */
  list(): Promise<readonly RegisteredWorkflow[]>;
  find(name: string): Promise<RegisteredWorkflow | null>;
}>;
