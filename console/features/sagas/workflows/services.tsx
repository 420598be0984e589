import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations, Service } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { workflowsTexts } from './texts/workflows-texts.ts';
import styles from './workflows.module.css';

type ServiceList = Operations['listServices']['answer'];

const everyMs = 5000;

/** Whom workflows call, who of them is down, and how many sagas wait for each. */
export function Services() {
  const t = useText(workflowsTexts);
  const api = useApi();
  const may = useMay('saga:services:view');
  const query = useQuery({
    queryKey: ['sagas', 'services'],
    queryFn: async ({ signal }) => (await api.get<ServiceList>('/api/v1/services', signal)).services,
    refetchInterval: everyMs,
    enabled: may.isAllowed,
  });
  return (
    <section aria-labelledby="services" className={styles['section']}>
      <h2 id="services">{t.services}</h2>
      {may.isAllowed ? (
        <LoadedPanel
          loaded={loadedOf(query, (services) => (services.length === 0 ? 'not_set_up' : null))}
          onRetry={() => void query.refetch()}
          renderEmpty={() => (
            <p>
              {t.noServices} {t.noServicesHint}
            </p>
          )}
          skeletonRows={3}
        >
          {(services) => <ServiceTable services={services} />}
        </LoadedPanel>
      ) : (
        <p>{may.reason}</p>
      )}
    </section>
  );
}

function ServiceTable({ services }: Readonly<{ services: readonly Service[] }>) {
  const t = useText(workflowsTexts);
  return (
    <div className={styles['tableBox']}>
      <table className={styles['table']}>
        <caption className="visually-hidden">{t.servicesCaption}</caption>
        <thead>
          <tr>
            {[t.service, t.type, t.circuit, t.waiting, t.idempotent, t.nextProbe, t.reason].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {services.map((service) => (
            <ServiceRow key={service.name} service={service} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ServiceRow({ service }: Readonly<{ service: Service }>) {
  const t = useText(workflowsTexts);
  const { name, type, circuit, since, waiting, idempotent, next_probe_at: probe, reason } = service;
  const filter = printFilter([{ qualifier: 'service', value: name, isExcluded: false }]);
  return (
    <tr>
      <td>{name}</td>
      <td>{type}</td>
      <td>
        <StatusBadge status={circuit} />{' '}
        {since === null ? null : (
          <>
            {t.openSince} <Time at={since} />
          </>
        )}
      </td>
      <td>
        {waiting === 0 ? (
          '0'
        ) : (
          <Link to="/sagas" search={{ q: filter }}>
            {formatCount(waiting)}
          </Link>
        )}
      </td>
      <td>{idempotent ? t.yes : t.no}</td>
      <td>{probe === null ? '–' : <Time at={probe} show="age" />}</td>
      <td className={styles['reason']}>{reason === null ? '–' : <MaskedText text={reason} />}</td>
    </tr>
  );
}
