import {
  Alert,
  AlertActionCloseButton,
  AlertGroup,
  Banner,
  Bullseye,
  Dropdown,
  DropdownItem,
  DropdownList,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadLogo,
  MastheadMain,
  MastheadToggle,
  MenuToggle,
  Nav,
  NavItem,
  NavList,
  Page,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Spinner,
  ToggleGroup,
  ToggleGroupItem,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from '@patternfly/react-core';
import {focusManager, useQueryClient} from '@tanstack/react-query';
import {type ReactElement, useEffect, useState} from 'react';
import {NavLink, Outlet, useLocation} from 'react-router';
import {ApiError, apiURL, errorText, send} from './api/client';
import {useMe} from './api/queries';
import {continueStreams} from './api/stream';
import {ErrorState} from './components/States';
import {Login, LoginAgain, loggedOutKey} from './components/Login';
import {Logo} from './components/Logo';
import {baseURL} from './lib/base';
import {dismiss, notify, useStale, useToasts} from './lib/notices';
import {DesktopIcon, ExclamationTriangleIcon, MoonIcon, SunIcon, UserIcon} from './lib/icons';
import {type Theme, selectTheme, selectedTheme} from './lib/theme';
import {Watcher} from './components/Watcher';

const sections = [
  {to: '/', text: 'Training jobs', isActive: (path: string) => path === '/' || path.startsWith('/projects') || path === '/create'},
  {to: '/runtimes', text: 'Runtimes', isActive: (path: string) => path === '/runtimes'},
  {to: '/quotas', text: 'Queues and quotas', isActive: (path: string) => path === '/quotas'},
  {to: '/usage', text: 'Usage', isActive: (path: string) => path === '/usage'},
  {to: '/help', text: 'Troubleshooting', isActive: (path: string) => path.startsWith('/help')},
  {to: '/glossary', text: 'Glossary', isActive: (path: string) => path === '/glossary'},
];

function ThemeToggle(): ReactElement {
  const [theme, setTheme] = useState(selectedTheme());
  const choices: [Theme, string, ReactElement][] = [
    ['light', 'Light theme', <SunIcon key="light" />],
    ['system', 'Theme of the system', <DesktopIcon key="system" />],
    ['dark', 'Dark theme', <MoonIcon key="dark" />],
  ];
  return (
    <ToggleGroup isCompact aria-label="Theme">
      {choices.map(([value, label, icon]) => (
        <ToggleGroupItem
          key={value}
          icon={icon}
          aria-label={label}
          isSelected={theme === value}
          onChange={() => {
            selectTheme(value);
            setTheme(value);
          }}
        />
      ))}
    </ToggleGroup>
  );
}

function UserMenu(): ReactElement | null {
  const {data: me} = useMe();
  const [isOpen, setOpen] = useState(false);
  const queries = useQueryClient();
  if (!me) return null;
  const logOut = async (): Promise<void> => {
    setOpen(false);
    try {
      const {message} = await send<{message: string}>('POST', apiURL('logout'), {});
      sessionStorage.setItem(loggedOutKey, message);
    } catch (error) {
      notify({variant: 'danger', title: 'You are still logged in', text: errorText(error)});
      return;
    }
    queries.clear();
    await queries.invalidateQueries({queryKey: ['me']});
    location.assign(baseURL());
  };
  return (
    <Dropdown
      className="mpi-menu"
      isOpen={isOpen}
      onOpenChange={setOpen}
      popperProps={{position: 'end'}}
      toggle={(ref) => (
        <MenuToggle ref={ref} isExpanded={isOpen} onClick={() => setOpen(!isOpen)} icon={<UserIcon />} aria-label={`User ${me.name}`} variant="plainText">
          <span className="mpi-user" title={me.name}>{me.name}</span>
        </MenuToggle>
      )}
    >
      <DropdownList>
        <DropdownItem key="name" isAriaDisabled description={`Dashboard ${me.version}`}>
          {me.name}
        </DropdownItem>
        {me.canLogOut ? (
          <DropdownItem key="logout" onClick={() => void logOut()}>
            Log out
          </DropdownItem>
        ) : null}
      </DropdownList>
    </Dropdown>
  );
}

const header = (
  <Masthead>
    <MastheadMain>
      <MastheadToggle>
        <PageToggleButton isHamburgerButton aria-label="Navigation" id="nav-toggle" />
      </MastheadToggle>
      <MastheadBrand>
        <MastheadLogo component={(props) => <NavLink {...props} to="/" />} className="mpi-brand">
          <Logo />
          <span>Distributed training</span>
        </MastheadLogo>
      </MastheadBrand>
    </MastheadMain>
    <MastheadContent>
      <Toolbar isStatic>
        <ToolbarContent>
          <ToolbarGroup align={{default: 'alignEnd'}} gap={{default: 'gapMd'}}>
            <ToolbarItem>
              <ThemeToggle />
            </ToolbarItem>
            <ToolbarItem>
              <UserMenu />
            </ToolbarItem>
          </ToolbarGroup>
        </ToolbarContent>
      </Toolbar>
    </MastheadContent>
  </Masthead>
);

function Navigation({isHorizontal = false}: {isHorizontal?: boolean}): ReactElement {
  const {pathname} = useLocation();
  return (
    <Nav aria-label="Pages" {...(isHorizontal ? {variant: 'horizontal-subnav' as const} : {})}>
      <NavList>
        {sections.map(({to, text, isActive}) => (
          <NavItem key={to} itemId={to} isActive={isActive(pathname)}>
            <NavLink to={to}>{text}</NavLink>
          </NavItem>
        ))}
      </NavList>
    </Nav>
  );
}

function Toasts(): ReactElement {
  const toasts = useToasts();
  return (
    <AlertGroup isToast isLiveRegion className="mpi-toasts" aria-label="Notifications">
      {toasts.map((toast) => (
        <Alert
          key={toast.id}
          variant={toast.variant}
          title={toast.title}
          timeout={toast.variant === 'danger' ? false : 8000}
          onTimeout={() => dismiss(toast.id)}
          actionClose={<AlertActionCloseButton title={toast.title} onClose={() => dismiss(toast.id)} />}
          actionLinks={toast.to ? <NavLink to={toast.to} onClick={() => dismiss(toast.id)}>{toast.link}</NavLink> : undefined}
        >
          {toast.text}
        </Alert>
      ))}
    </AlertGroup>
  );
}

function StaleBanner(): ReactElement | null {
  const stale = useStale();
  if (!stale) return null;
  return (
    <Banner status="warning" screenReaderText="Warning:" role="status">
      <ExclamationTriangleIcon /> {stale}
    </Banner>
  );
}

/**
 * Returns whether the login has expired, until the user has logged in again. In the meantime nothing is asked again by itself. Once
 * another user has logged in, the page is loaded again, because it has data of the user before.
 */
function useExpiry({data, error, refetch}: ReturnType<typeof useMe>): {isExpired: boolean; isOther: boolean} {
  const [isExpired, setExpired] = useState(false);
  if (!isExpired && error instanceof ApiError && error.status === 401) setExpired(true);
  else if (isExpired && data && !error) setExpired(false);
  const [user, setUser] = useState<string>();
  if (user === undefined && data) setUser(data.name);
  const isOther = user !== undefined && data !== undefined && data.name !== user;
  useEffect(() => {
    if (isOther) location.reload();
  }, [isOther]);
  useEffect(() => {
    if (!isExpired) return undefined;
    focusManager.setFocused(false);
    // The user may have logged in in another tab.
    const look = (): void => {
      if (!document.hidden) void refetch();
    };
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      focusManager.setFocused(undefined);
      continueStreams();
    };
  }, [isExpired, refetch]);
  return {isExpired, isOther};
}

/**
 * App is the frame around all pages: header, navigation, notifications; and the login if nobody is logged in. Embedded in the
 * page of a host, it has no header.
 */
export function App({isEmbedded}: {isEmbedded: boolean}): ReactElement {
  const me = useMe();
  const {isExpired, isOther} = useExpiry(me);
  const {pathname} = useLocation();
  useEffect(() => {
    // A screen reader continues at the top of the new page.
    document.getElementById('main')?.focus({preventScroll: true});
    document.getElementById('main')?.scrollTo(0, 0);
  }, [pathname]);
  if (isExpired && !me.data) return <Login />;
  let body: ReactElement;
  if (me.data && !isOther) body = <Outlet />;
  else if (me.error) {
    body = <ErrorState error={me.error} retry={() => void me.refetch()} what="The dashboard cannot be loaded" />;
  } else {
    body = (
      <Bullseye>
        <Spinner aria-label="Loading" />
      </Bullseye>
    );
  }
  const content = (
    <>
      <Toasts />
      {me.data ? <Watcher /> : null}
      {body}
    </>
  );
  // What the user has written stays while the login is renewed.
  const frame = (page: ReactElement): ReactElement => (
    <>
      <div className={`mpi-frame${isExpired ? ' is-hidden' : ''}`}>{page}</div>
      {isExpired ? <LoginAgain /> : null}
    </>
  );
  if (isEmbedded) {
    return frame(
      <>
        <StaleBanner />
        <Navigation isHorizontal />
        {content}
      </>,
    );
  }
  return frame(
    <Page
      masthead={header}
      sidebar={
        <PageSidebar>
          <PageSidebarBody>
            <Navigation />
          </PageSidebarBody>
        </PageSidebar>
      }
      isManagedSidebar
      mainContainerId="main"
      mainAriaLabel="Content"
      skipToContent={<SkipToContent href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>Skip to content</SkipToContent>}
      banner={<StaleBanner />}
      isContentFilled
    >
      {content}
    </Page>,
  );
}

