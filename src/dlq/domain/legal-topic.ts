/** Whether messages can be published to a topic of this name. Names that begin with `__` are internal to the broker. */
export function isLegalTopic(name: string): boolean {
  return /^[A-Za-z\d._-]{1,249}$/.test(name) && !name.startsWith('__') && name !== '.' && name !== '..';
}
