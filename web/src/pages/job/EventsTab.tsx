import {EmptyState, EmptyStateBody, Label, Switch} from '@patternfly/react-core';
import {Table, Tbody, Td, Th, Thead, Tr} from '@patternfly/react-table';
import {type ReactElement, useState} from 'react';
import {type JobKey, useEvents} from '../../api/queries';
import type {Detail} from '../../api/types';
import {Age} from '../../components/Common';
import {Loaded} from '../../components/States';
import {ExclamationTriangleIcon, InfoCircleIcon} from '../../lib/icons';

/** The Kubernetes events of the job and its pods, the latest first. */
export default function EventsTab({job}: {job: JobKey; detail: Detail}): ReactElement {
  const events = useEvents(job);
  const [onlyWarnings, setOnlyWarnings] = useState(false);
  return (
    <Loaded query={events} what="The events cannot be shown">
      {(data) => {
        const shown = data.events.filter((event) => !onlyWarnings || event.warning).reverse();
        return (
          <div className="mpi-stack">
            <Switch label="Only warnings" isChecked={onlyWarnings} onChange={(_, on) => setOnlyWarnings(on)} />
            {shown.length === 0 ? (
              <EmptyState titleText="No events" headingLevel="h2" variant="sm">
                <EmptyStateBody>Kubernetes deletes events after an hour. The timeline in the overview is kept.</EmptyStateBody>
              </EmptyState>
            ) : (
              <Table aria-label="Events of the job" variant="compact" gridBreakPoint="grid-lg">
                <Thead>
                  <Tr>
                    {['Age', 'Reason', 'Object', 'Message'].map((title) => (
                      <Th key={title} modifier={title === 'Message' ? 'wrap' : 'fitContent'}>
                        {title}
                      </Th>
                    ))}
                  </Tr>
                </Thead>
                <Tbody>
                  {shown.map((event, i) => (
                    <Tr key={i}>
                      <Td dataLabel="Age" className="mpi-numbers">
                        <Age at={event.time} />
                      </Td>
                      <Td dataLabel="Reason">
                        <Label isCompact color={event.warning ? 'orange' : 'grey'} icon={event.warning ? <ExclamationTriangleIcon /> : <InfoCircleIcon />}>
                          {event.reason}
                        </Label>
                      </Td>
                      <Td dataLabel="Object" className="mpi-wrap">{event.object}</Td>
                      <Td dataLabel="Message" className="mpi-wrap">
                        {event.message}
                        {event.count > 1 ? <span className="mpi-subtle"> ({event.count} times)</span> : null}
                      </Td>
                    </Tr>
                  ))}
                </Tbody>
              </Table>
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
