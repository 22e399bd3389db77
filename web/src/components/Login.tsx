import {Alert, Button, Card, CardBody, CardTitle, ClipboardCopy, Content, Form, FormGroup, FormHelperText, HelperText, HelperTextItem, Modal, ModalBody, TextInput} from '@patternfly/react-core';
import {focusManager, useQueryClient} from '@tanstack/react-query';
import {type FormEvent, type ReactElement, useEffect, useState} from 'react';
import {apiURL, errorText, send} from '../api/client';

/** Holds what became of the token at the last log-out. */
export const loggedOutKey = 'mpi-logged-out';

/** Asks for a bearer token. Behind a proxy with a login of its own this page is not seen. */
export const Login = (): ReactElement => (
  <main className="mpi-login">
    <LoginCard />
  </main>
);

/** Asks for a token again, over the page and its dialogs, which stay as they are. */
export const LoginAgain = (): ReactElement => (
  <Modal isOpen variant="small" aria-label="Log in again" backdropClassName="mpi-login-again">
    <ModalBody>
      <LoginCard isAgain />
    </ModalBody>
  </Modal>
);

function LoginCard({isAgain = false}: {isAgain?: boolean}): ReactElement {
  const queries = useQueryClient();
  const [token, setToken] = useState('');
  const [failure, setFailure] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [loggedOut] = useState(() => sessionStorage.getItem(loggedOutKey));
  useEffect(() => {
    const title = document.title;
    document.title = 'Log in · Distributed training';
    sessionStorage.removeItem(loggedOutKey);
    return () => {
      document.title = title;
    };
  }, []);
  const logIn = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure('');
    try {
      await send('POST', apiURL('login'), {token: token.trim()});
      setToken('');
      focusManager.setFocused(undefined);
      await queries.invalidateQueries();
    } catch (error) {
      setFailure(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card isLarge isPlain={isAgain}>
      <CardTitle component="h1">
        <span className="mpi-brand">
          <img src="icon.svg" alt="" width="40" height="40" /> Log in to distributed training
        </span>
      </CardTitle>
      <CardBody>
        <Form onSubmit={(event) => void logIn(event)}>
          {isAgain ? <Alert variant="info" isInline title="The login has expired. After the login, the page continues as you left it." component="p" /> : null}
          <Content component="p">The dashboard acts with your token, and shows and does what you may see and do in the cluster.</Content>
          {loggedOut && !failure ? <Alert variant="info" isInline title={loggedOut} component="p" /> : null}
          {failure ? <Alert variant="danger" isInline title={failure} component="p" /> : null}
          <FormGroup label="Token" isRequired fieldId="token">
            <TextInput
              id="token"
              type="password"
              autoComplete="off"
              isRequired
              value={token}
              onChange={(_, value) => setToken(value)}
              validated={failure ? 'error' : 'default'}
              aria-describedby="token-help"
            />
            <FormHelperText>
              <HelperText id="token-help">
                <HelperTextItem>It is kept in a cookie that scripts cannot read, until the browser is closed or you log out.</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
          <Button type="submit" isDisabled={token.trim() === '' || isBusy} isLoading={isBusy}>
            Log in
          </Button>
          <Content component="p">To get a token on OpenShift:</Content>
          <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Command for OpenShift">
            oc whoami --show-token
          </ClipboardCopy>
          <Content component="p">On other clusters, of a service account:</Content>
          <ClipboardCopy isReadOnly hoverTip="Copy" clickTip="Copied" textAriaLabel="Command for Kubernetes">
            kubectl create token NAME
          </ClipboardCopy>
        </Form>
      </CardBody>
    </Card>
  );
}
