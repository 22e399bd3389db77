// A page with its own React, PatternFly and router, which loads the pages of the dashboard from their server.
import '@patternfly/react-core/dist/styles/base.css';
import {Button, Page, PageSection} from '@patternfly/react-core';
import {StrictMode, Suspense, lazy} from 'react';
import {createRoot} from 'react-dom/client';
import {BrowserRouter, Link, Route, Routes} from 'react-router';

const TrainingJobs = lazy(() => import('trainingJobs/App'));

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <BrowserRouter>
      <Page>
        <PageSection>
          <Button component={(props) => <Link {...props} to="/training" />}>Open the training jobs</Button>
          <Button component={(props) => <Link {...props} to="/training/projects/hosted/mpijob/hosted-job?tab=events" />}>Open the job</Button>
          <Button component={(props) => <Link {...props} to="/training/usage" />}>Open the usage</Button>
          <Button component={(props) => <Link {...props} to="/" />}>Leave</Button>
        </PageSection>
        <Suspense fallback="Loading">
          <Routes>
            <Route path="/" element={<h1>Host</h1>} />
            <Route path="/training/*" element={<TrainingJobs path="/training" server="/dashboard" />} />
          </Routes>
        </Suspense>
      </Page>
    </BrowserRouter>
  </StrictMode>,
);
