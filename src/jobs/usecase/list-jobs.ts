import type { Count, Job, JobFilter, JobReader } from './reading-ports.ts';

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: string | null; pageSize: number }>;

export type JobPage = Readonly<{
  jobs: readonly Job[];
  count: Count;
  hasNext: boolean;
  /** Behind which job a list by keyset goes on, or one by numbers that does not get further; null at the end. */
  next: string | null;
}>;

/**
 * One page, newest first, with the total. One row more than the page tells whether there is a next one.
 *
 * A page may be short, even empty, and yet have a next one: then the bound of what is looked at for one page came
 * first. By keyset the list goes on from there. By numbers it ends there, and says where a keyset would go on.
 */
export async function listJobs(
  reader: Pick<JobReader, 'list'>,
  filter: JobFilter,
  page: ListPage,
): Promise<JobPage> {
  const offset = page.by === 'number' ? page.offset : 0;
  const listed = await reader.list(filter, {
    limit: page.pageSize + 1,
    offset,
    after: page.by === 'keyset' ? page.after : null,
  });
  const { count } = listed;
  const jobs = listed.jobs.slice(0, page.pageSize);
  if (listed.jobs.length > page.pageSize) {
    const last = jobs.at(-1)?.jobId ?? null;
    return { jobs, count, hasNext: true, next: page.by === 'keyset' ? last : null };
  }
  // Who counts on beyond the last page is not sent round in circles.
  const isBeyond = offset > 0 && jobs.length === 0;
  const next = isBeyond ? null : listed.lookedTo;
  return { jobs, count, hasNext: next !== null, next };
}
