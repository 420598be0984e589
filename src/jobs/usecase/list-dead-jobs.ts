import { listJobs, type JobPage, type ListPage } from './list-jobs.ts';
import type { DeadGroups, JobFilter, JobReader } from './reading-ports.ts';

export type DeadPage = Readonly<{ page: JobPage; groups: DeadGroups }>;

/** What has died, and of what most of it. Unless asked otherwise, only what nobody has decided about. */
export async function listDeadJobs(
  reader: Pick<JobReader, 'list' | 'deadGroups'>,
  asked: Omit<JobFilter, 'status'>,
  page: ListPage,
): Promise<DeadPage> {
  const filter: JobFilter = { ...asked, status: 'dead_letter', resolution: asked.resolution ?? 'unresolved' };
  const [listed, groups] = await Promise.all([listJobs(reader, filter, page), reader.deadGroups(filter)]);
  return { page: listed, groups };
}
