import { CircleUserRound } from 'lucide-react';
import { useId } from 'react';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { useLogout } from '../../components/session/use-logout.ts';
import { useSession } from '../../components/session/session.tsx';
import { Button } from '../../components/button/button.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { Preferences } from '../../lib/preferences.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './settings-menu.module.css';

/** The browser opens and closes it, keeps it above everything, and gives the focus back. */
export function SettingsMenu() {
  const t = useText(appTexts);
  const id = useId();
  const { me } = useSession();
  return (
    <>
      <button
        type="button"
        className={styles['trigger']}
        popoverTarget={id}
        aria-label={t.settingsOf(me.name)}
      >
        <CircleUserRound size={16} aria-hidden />
        <span className={styles['name']} aria-hidden>
          {me.name}
        </span>
      </button>
      <section id={id} popover="auto" aria-label={t.settings} className={styles['menu']}>
        <Settings />
        <Identity />
      </section>
    </>
  );
}

function Settings() {
  const t = useText(appTexts);
  return (
    <>
      <Choice
        name="theme"
        legend={t.theme}
        options={{ system: t.themeSystem, light: t.themeLight, dark: t.themeDark }}
      />
      <Choice
        name="density"
        legend={t.density}
        options={{ compact: t.densityCompact, normal: t.densityNormal, roomy: t.densityRoomy }}
      />
      <Choice
        name="timeZone"
        legend={t.timeZone}
        options={{ local: t.timeZoneLocal(localZone()), utc: 'UTC' }}
      />
      <Choice name="language" legend={t.language} options={{ en: 'English', ja: '日本語' }} />
      <Choice name="keys" legend={t.keys} options={{ on: t.keysOn, off: t.keysOff }} />
    </>
  );
}

function Identity() {
  const t = useText(appTexts);
  const { me } = useSession();
  const { logout, failure } = useLogout();
  return (
    <div className={styles['identity']}>
      <p>
        <strong>{me.name}</strong>
        <br />
        {me.roles.join(', ')}
      </p>
      {logout === null ? null : <Button onPress={logout}>{t.logout}</Button>}
      {failure === null ? null : <p role="alert">{failure}</p>}
    </div>
  );
}

type ChoiceProps<Name extends keyof Preferences> = Readonly<{
  name: Name;
  legend: string;
  options: Readonly<Record<Preferences[Name], string>>;
}>;

function Choice<Name extends keyof Preferences>({ name, legend, options }: ChoiceProps<Name>) {
  const [preferences, change] = usePreferences();
  const group = useId();
  return (
    <fieldset className={styles['choice']}>
      <legend>{legend}</legend>
      <div className={styles['options']}>
        {Object.entries<string>(options).map(([value, text]) => (
          <label key={value} className={styles['option']} lang={name === 'language' ? value : undefined}>
            <input
              type="radio"
              name={group}
              checked={preferences[name] === value}
              onChange={() => change({ [name]: value })}
            />
            {text}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Such as `Asia/Tokyo`. */
function localZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}
