import { useText } from '../../../components/text/use-text.ts';
import type { Group } from '../../../lib/server-shapes.ts';
import styles from './groups.module.css';
import { groupsTexts } from './texts/groups-texts.ts';

export function GroupBadges({ badges }: Readonly<{ badges: Group['badges'] }>) {
  const t = useText(groupsTexts);
  const words = {
    new: [t.badgeNew, t.badgeNewHint],
    back: [t.badgeBack, t.badgeBackHint],
    growing: [t.badgeGrowing, t.badgeGrowingHint],
  } as const;
  return badges.map((badge) => (
    <span key={badge} className={styles['badge']} data-badge={badge} title={words[badge][1]}>
      {words[badge][0]}
    </span>
  ));
}
