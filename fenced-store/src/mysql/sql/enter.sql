REPLACE INTO fenced_entered (connection_id, resource, token, entry)
-- ? entry, ? resource, ? token, ? digest of the holder, ? issuer
SELECT CONNECTION_ID(), resource, token, ? FROM fenced_mark
WHERE resource = ? AND token = ? AND holder = ? AND issuer = ?
LOCK IN SHARE MODE
