import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  needsPermission: (permission: string, roles: string) =>
    `Needs the permission ${permission}, which ${roles === '' ? 'no role of yours has' : `your roles (${roles}) do not have`}.`,
} as const satisfies Texts;
